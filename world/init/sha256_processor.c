/* SHA-256 by the processor's own instructions (Intel SHA extensions): six times as fast. */
#include "sha256.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

/* CPUID leaf 7, EBX bit 29: SHA; leaf 1, ECX bits 9 and 19: SSSE3 and SSE4.1. */
static int has_instructions(void) {
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b >> 29 & 1) == 0) return 0;
  return __get_cpuid(1, &a, &b, &c, &d) && (c >> 9 & 1) != 0 && (c >> 19 & 1) != 0;
}

/* Four rounds at a time; the instructions keep the state as ABEF and CDGH. */
__attribute__((target("sha,ssse3,sse4.1"))) static void compress(uint32_t *state, const uint8_t *data, size_t blocks) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
  __m128i dcba = _mm_shuffle_epi32(_mm_loadu_si128((const void *)state), 0xB1);
  __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128((const void *)(state + 4)), 0x1B);
  __m128i abef = _mm_alignr_epi8(dcba, hgfe, 8);
  __m128i cdgh = _mm_blend_epi16(hgfe, dcba, 0xF0);
  for (; blocks > 0; blocks--, data += SHA256_BLOCK) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
      if (i < 4) {
        w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const void *)(data + 16 * i)), swap);
      } else {
        __m128i older = _mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]);
        older = _mm_add_epi32(older, _mm_alignr_epi8(w[(i + 3) & 3], w[(i + 2) & 3], 4));
        w[i & 3] = _mm_sha256msg2_epu32(older, w[(i + 3) & 3]);
      }
      __m128i words = _mm_add_epi32(w[i & 3], _mm_loadu_si128((const void *)(SHA256_ROUNDS + 4 * i)));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, words);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(words, 0x0E));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  __m128i feba = _mm_shuffle_epi32(abef, 0x1B);
  __m128i dchg = _mm_shuffle_epi32(cdgh, 0xB1);
  _mm_storeu_si128((void *)state, _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128((void *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

sha256_blocks sha256_of_processor(void) {
  return has_instructions() ? compress : NULL;
}
#else
sha256_blocks sha256_of_processor(void) {
  return NULL;
}
#endif
