/* SHA-256 (FIPS 180-4). Pure: no system calls. */
#ifndef SUBSTRATE_LIB_SHA256_H
#define SUBSTRATE_LIB_SHA256_H

#include <stddef.h>
#include <stdint.h>

/* Hex digits, without a NUL. */
#define SHA256_HEX 64
#define SHA256_BLOCK 64

struct sha256 {
  uint32_t state[8];
  uint64_t length; /* bytes added so far */
  uint8_t rest[SHA256_BLOCK];
};

void sha256_begin(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *data, size_t length);
/* Ends the hash; `hex` takes SHA256_HEX digits. */
void sha256_end(struct sha256 *hash, char *hex);

#endif
