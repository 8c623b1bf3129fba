/*
 * A control loop around an exported controller.
 *
 * Here sensors are numbers on standard input and actuators numbers on standard output: one line of gear and action for
 * each observation. An empty line begins a new episode. On a robot, put your drivers in read_sensors and
 * drive_actuators, and wait for your timer at the top of the loop.
 *
 *     build/loop [cost coefficient] < observations.txt
 */
#include <stdio.h>
#include <stdlib.h>
#include HEADER

#define PASTE(a, b) a##b
#define JOIN(a, b) PASTE(a, b)
#define CONTROLLER(what) JOIN(NAME, what)
#define SIZE(what) JOIN(UPPER, what)

enum reading { OBSERVED, NEW_EPISODE, ENDED };

/* The next observation, value by value. */
static enum reading read_sensors(float *observation)
{
    int i, c, newlines = 0;
    while ((c = getchar()) == '\n' || c == ' ' || c == '\t')
        newlines += c == '\n';
    if (c == EOF)
        return ENDED;
    ungetc(c, stdin);
    if (newlines > 1)
        return NEW_EPISODE;
    for (i = 0; i < SIZE(_OBSERVATION_SIZE); ++i)
        if (scanf("%f", &observation[i]) != 1) {
            fprintf(stderr, "value %d of an observation of %d is missing\n", i + 1, SIZE(_OBSERVATION_SIZE));
            exit(1);
        }
    return OBSERVED;
}

static void drive_actuators(int gear, const float *action)
{
    int j;
    printf("%d", gear);
    for (j = 0; j < SIZE(_ACTION_SIZE); ++j)
        printf(" %.9g", (double)action[j]);
    printf("\n");
}

int main(int argc, char **argv)
{
    float observation[SIZE(_OBSERVATION_SIZE)], action[SIZE(_ACTION_SIZE)];
    CONTROLLER(_state) state;
    enum reading reading;

    CONTROLLER(_init)(&state);
    if (argc > 1) {
#ifdef WITH_DIAL
        if (CONTROLLER(_set_cost_coefficient)(&state, (float)atof(argv[1]))) {
            fprintf(stderr, "cost coefficient %s is not on the dial\n", argv[1]);
            return 1;
        }
#else
        fprintf(stderr, "this controller has no dial to set to %s\n", argv[1]);
        return 1;
#endif
    }
    while ((reading = read_sensors(observation)) != ENDED) {
        if (reading == NEW_EPISODE) {
            CONTROLLER(_reset)(&state);
            continue;
        }
        drive_actuators(CONTROLLER(_step)(&state, observation, action), action);
    }
    return 0;
}
