#include "lib/siphash.h"

#include <string.h>

static uint64_t rotate(uint64_t value, int bits) {
  return value << bits | value >> (64 - bits);
}

static void mix(uint64_t v[4], int rounds) {
  for (int i = 0; i < rounds; i++) {
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
  }
}

uint64_t siphash(const uint64_t key[2], const void *data, size_t length) {
  const uint8_t *bytes = data;
  uint64_t v[4] = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261,
                   key[1] ^ 0x7465646279746573};
  size_t whole = length / 8 * 8;
  for (size_t at = 0; at < whole; at += 8) {
    uint64_t word;
    memcpy(&word, bytes + at, 8);
    v[3] ^= word;
    mix(v, 2);
    v[0] ^= word;
  }
  uint64_t last = (uint64_t)length << 56;
  for (size_t i = whole; i < length; i++) last |= (uint64_t)bytes[i] << (8 * (i - whole));
  v[3] ^= last;
  mix(v, 2);
  v[0] ^= last;
  v[2] ^= 0xff;
  mix(v, 4);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}
