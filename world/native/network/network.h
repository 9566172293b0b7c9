/* `substrate-init network NFT`: the helper of a world's network, outside the world's mounts and processes. */
#ifndef SUBSTRATE_NETWORK_NETWORK_H
#define SUBSTRATE_NETWORK_NETWORK_H

/* `nft` is a path, or `-` on a host without nft. Serves until the broker is gone. */
_Noreturn void network_run(const char *nft);

#endif
