/* SipHash-2-4 (Aumasson and Bernstein, 2012): without the key nobody can find colliding texts. */
#ifndef SUBSTRATE_LIB_SIPHASH_H
#define SUBSTRATE_LIB_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t siphash(const uint64_t key[2], const void *data, size_t length);

#endif
