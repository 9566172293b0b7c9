/* `substrate-init network NFT`: the helper of one world's network, outside of its mounts and processes. */
#ifndef SUBSTRATE_NETWORK_NETWORK_H
#define SUBSTRATE_NETWORK_NETWORK_H

/* `nft` is a path, or `-` where the host has none. Serves until the broker goes. */
_Noreturn void network_run(const char *nft);

#endif
