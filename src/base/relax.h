/* relax.h - a turn of a loop that waits for another thread: the processor is told that nothing is done here. */
#ifndef STRETTO_BASE_RELAX_H
#define STRETTO_BASE_RELAX_H

static inline void cpu_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
