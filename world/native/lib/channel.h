/* The one stream socket to the broker: whole frames out, whole frames in. */
#ifndef SUBSTRATE_LIB_CHANNEL_H
#define SUBSTRATE_LIB_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHANNEL_FD 3

struct frame {
  uint8_t type;
  uint32_t id;
  uint32_t length;
  uint8_t *payload; /* writable, valid until channel_release */
};

/* Makes fd 3 close-on-exec and blocking; exits when it is no socket. */
void channel_open(void);

/* Sends one frame, blocking until the broker took it, unless this process is patient: then what does not fit waits in here.
   Exits when the broker is gone. */
void channel_send(uint8_t type, uint32_t id, const void *payload, size_t length);

/* Whether a broker that does not read is waited for by nobody. */
void channel_be_patient(bool yes);
bool channel_has_backlog(void);
/* False: so much waits for it that what it would not miss need not be sent. */
bool channel_has_room(void);
/* As much of it as goes now. */
void channel_send_backlog(void);

/* Receives what is there without blocking (with `wait` set: blocks). Exits at once on EOF or error.
   False when the buffer is full: frames must be taken out first. */
bool channel_receive(bool wait);

/* True: `frame` holds the next whole frame. False: more bytes are needed. A malformed header ends the world. */
bool channel_next(struct frame *frame);

/* Takes the frame that channel_next showed out of the buffer, and gives a large buffer back. */
void channel_release(void);

#endif
