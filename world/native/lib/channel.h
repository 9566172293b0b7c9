/* The stream socket to the broker: whole frames in both directions. */
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

/* Makes fd 3 close-on-exec and blocking; exits if fd 3 is not a socket. */
void channel_open(void);

/* Sends a frame. Blocks until the broker has taken the frame, unless patient mode is on: then unsent bytes
   wait in a backlog. A broker that is gone ends the world (channel_lost). */
void channel_send(uint8_t type, uint32_t id, const void *payload, size_t length);

/* Switches patient mode: a broker that does not read no longer blocks PID 1. */
void channel_be_patient(bool yes);
bool channel_has_backlog(void);
/* False: the backlog is so long that expendable frames should be left out. */
bool channel_has_room(void);
/* Sends as much of the backlog as the socket takes. */
void channel_send_backlog(void);

/* Receives available bytes without blocking (with `wait`: blocks). Exits at once on EOF or error. False when
   the buffer is full: take frames out first. */
bool channel_receive(bool wait);

/* True: `frame` holds the next whole frame. False: more bytes are needed. A malformed header ends the
   world. */
bool channel_next(struct frame *frame);

/* Ends the world of a broker that is gone. */
_Noreturn void channel_lost(void);

/* Removes the frame of channel_next from the buffer, and frees a large buffer. */
void channel_release(void);

#endif
