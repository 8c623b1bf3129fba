/* The smallest control loop: sensors and actuators are memory that your interrupt handlers or DMA fill and empty. */
#include HEADER

#define PASTE(a, b) a##b
#define JOIN(a, b) PASTE(a, b)
#define CONTROLLER(what) JOIN(NAME, what)
#define SIZE(what) JOIN(UPPER, what)

volatile float sensors[SIZE(_OBSERVATION_SIZE)];
volatile float actuators[SIZE(_ACTION_SIZE)];
volatile int stop;

int main(void)
{
    float observation[SIZE(_OBSERVATION_SIZE)], action[SIZE(_ACTION_SIZE)];
    CONTROLLER(_state) state;
    int i;

    CONTROLLER(_init)(&state);
    while (!stop) { /* wait for your timer here */
        for (i = 0; i < SIZE(_OBSERVATION_SIZE); ++i)
            observation[i] = sensors[i];
        CONTROLLER(_step)(&state, observation, action);
        for (i = 0; i < SIZE(_ACTION_SIZE); ++i)
            actuators[i] = action[i];
    }
    return 0;
}
