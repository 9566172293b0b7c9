#include "lib/sha256.h"

#include <string.h>

/* Round constants of the standard. */
static const uint32_t ROUNDS[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turned(uint32_t word, int bits) {
  return (word >> bits) | (word << (32 - bits));
}

static uint32_t big_endian(const uint8_t *bytes) {
  return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Names as in the standard, 6.2.2. */
static void block(uint32_t *state, const uint8_t *data) {
  uint32_t w[64];
  for (int t = 0; t < 16; t++) w[t] = big_endian(data + t * 4);
  for (int t = 16; t < 64; t++) {
    uint32_t s0 = turned(w[t - 15], 7) ^ turned(w[t - 15], 18) ^ (w[t - 15] >> 3);
    uint32_t s1 = turned(w[t - 2], 17) ^ turned(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = s1 + w[t - 7] + s0 + w[t - 16];
  }
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
  uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
  for (int t = 0; t < 64; t++) {
    uint32_t sum1 = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25);
    uint32_t t1 = h + sum1 + ((e & f) ^ (~e & g)) + ROUNDS[t] + w[t];
    uint32_t sum0 = turned(a, 2) ^ turned(a, 13) ^ turned(a, 22);
    uint32_t t2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1;
    d = c, c = b, b = a, a = t1 + t2;
  }
  const uint32_t now[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; i++) state[i] += now[i];
}

static void compress(uint32_t *state, const uint8_t *data, size_t blocks) {
  for (; blocks > 0; blocks--, data += SHA256_BLOCK) block(state, data);
}

void sha256_begin(struct sha256 *hash) {
  static const uint32_t FIRST[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memcpy(hash->state, FIRST, sizeof FIRST);
  hash->length = 0;
}

void sha256_add(struct sha256 *hash, const void *data, size_t length) {
  const uint8_t *at = data;
  size_t held = hash->length % SHA256_BLOCK;
  hash->length += length;
  if (held > 0) {
    size_t taken = SHA256_BLOCK - held < length ? SHA256_BLOCK - held : length;
    memcpy(hash->rest + held, at, taken);
    at += taken;
    length -= taken;
    if (held + taken < SHA256_BLOCK) return;
    compress(hash->state, hash->rest, 1);
  }
  compress(hash->state, at, length / SHA256_BLOCK);
  memcpy(hash->rest, at + length - length % SHA256_BLOCK, length % SHA256_BLOCK);
}

void sha256_end(struct sha256 *hash, char *hex) {
  static const char DIGITS[] = "0123456789abcdef";
  uint8_t end[2 * SHA256_BLOCK] = {0x80};
  uint64_t bits = hash->length * 8;
  size_t held = hash->length % SHA256_BLOCK;
  size_t length = (held < SHA256_BLOCK - 8 ? SHA256_BLOCK : 2 * SHA256_BLOCK) - held;
  for (int i = 0; i < 8; i++) end[length - 1 - (size_t)i] = (uint8_t)(bits >> (8 * i));
  sha256_add(hash, end, length);
  for (int i = 0; i < SHA256_HEX; i++) hex[i] = DIGITS[hash->state[i / 8] >> (28 - i % 8 * 4) & 15];
}
