/* The instruction sets that this processor supports: bit i is set for the build i of compiling.py. On x86 these are AVX2, AVX2
 * with VNNI (int8), AVX-512 with VNNI, and that with bfloat16. On ARM they are NEON, which every 64-bit processor has, and NEON
 * with products of bytes (dotprod). */

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

int processor_levels(void) {
    const uint32_t fma_xsave_avx = BIT(12) | BIT(27) | BIT(28); /* leaf 1, ecx */
    const uint32_t avx2_bmi2 = BIT(5) | BIT(8);                 /* leaf 7, ebx */
    const uint32_t f_dq_cd_bw_vl = BIT(16) | BIT(17) | BIT(28) | BIT(30) | BIT(31);
    const uint32_t vnni = BIT(11), avx_vnni = BIT(4), bf16 = BIT(5); /* leaf 7, ecx; leaf 7.1, eax */
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !ALL(c, fma_xsave_avx) || !ALL(saved_registers(), 0x06)) return 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !ALL(b, avx2_bmi2)) return 0;
    const int has_avx512 = ALL(b, f_dq_cd_bw_vl) && ALL(c, vnni) && ALL(saved_registers(), 0xe6);
    if (a < 1 || !__get_cpuid_count(7, 1, &a, &b, &c, &d)) a = 0;
    return 1 | ALL(a, avx_vnni) << 1 | has_avx512 << 2 | (has_avx512 && ALL(a, bf16)) << 3;
}
#elif defined(__aarch64__) && defined(__APPLE__)
int processor_levels(void) { return 3; } /* every processor of Apple with macOS has dotprod */
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#define HAS_DOTPROD (1ul << 20) /* HWCAP_ASIMDDP of Linux */

int processor_levels(void) { return getauxval(AT_HWCAP) & HAS_DOTPROD ? 3 : 1; }
#elif defined(__aarch64__)
int processor_levels(void) { return 1; }
#else
int processor_levels(void) { return 0; }
#endif
