/* From reset to main on a Cortex-M4F: floating point on, data copied, bss cleared. */
#include <stdint.h>

extern uint32_t data_source, data_begin, data_end, bss_begin, bss_end, stack_top;
int main(void);
void reset(void);

#ifdef SEMIHOSTING
#include <stdlib.h>
void initialise_monitor_handles(void);
void _init(void);
void _fini(void);
void _init(void) {}
void _fini(void) {}
#endif

static void halt(void)
{
    for (;;)
        ;
}

void reset(void)
{
    uint32_t *from = &data_source, *to;
    int result;
    *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20; /* CPACR: coprocessors 10 and 11 */
    for (to = &data_begin; to < &data_end; ++to)
        *to = *from++;
    for (to = &bss_begin; to < &bss_end; ++to)
        *to = 0;
#ifdef SEMIHOSTING
    initialise_monitor_handles();
    result = main();
    exit(result);
#else
    result = main();
    (void)result;
    halt();
#endif
}

/* Stack, reset, and the faults up to the first interrupt. */
__attribute__((section(".vectors"), used)) static const uintptr_t vectors[16] = {
    (uintptr_t)&stack_top, (uintptr_t)reset, (uintptr_t)halt, (uintptr_t)halt, (uintptr_t)halt, (uintptr_t)halt,
    (uintptr_t)halt,
};
