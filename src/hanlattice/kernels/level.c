/* The instruction set of this processor, as an index into the builds of compiling.py; 0 is none of them. On x86, 1 is AVX2,
 * 2 is AVX-512 with VNNI (int8), 3 is that with bfloat16. On ARM, 1 is NEON, which every 64-bit processor has, 2 is NEON with
 * products of bytes (dotprod). */

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdint.h>

/* The registers that the system saves: bits 1 and 2 are those of AVX, 5 to 7 those of AVX-512. */
static uint32_t saved_registers(void) {
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

#define ALL(word, mask) (((word) & (mask)) == (mask))
#define BIT(n) (1u << (n))

int processor_level(void) {
    const uint32_t fma_xsave_avx = BIT(12) | BIT(27) | BIT(28); /* leaf 1, ecx */
    const uint32_t avx2_bmi2 = BIT(5) | BIT(8);                 /* leaf 7, ebx */
    const uint32_t f_dq_cd_bw_vl = BIT(16) | BIT(17) | BIT(28) | BIT(30) | BIT(31);
    const uint32_t vnni = BIT(11), bf16 = BIT(5); /* leaf 7, ecx; leaf 7.1, eax */
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !ALL(c, fma_xsave_avx) || !ALL(saved_registers(), 0x06)) return 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !ALL(b, avx2_bmi2)) return 0;
    if (!ALL(b, f_dq_cd_bw_vl) || !ALL(c, vnni) || !ALL(saved_registers(), 0xe6)) return 1;
    return a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && ALL(a, bf16) ? 3 : 2;
}
#elif defined(__aarch64__) && defined(__APPLE__)
int processor_level(void) { return 2; } /* every processor of Apple with macOS has dotprod */
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#define HAS_DOTPROD (1ul << 20) /* HWCAP_ASIMDDP of Linux */

int processor_level(void) { return getauxval(AT_HWCAP) & HAS_DOTPROD ? 2 : 1; }
#elif defined(__aarch64__)
int processor_level(void) { return 1; }
#else
int processor_level(void) { return 0; }
#endif
