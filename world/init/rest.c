#define _GNU_SOURCE
#include "rest.h"

#include "channel.h"
#include "failure.h"
#include "fields.h"
#include "frames.h"

static void check(const struct frame *frame) {
  struct field_reader reader = {frame->payload, frame->payload + frame->length};
  struct field field;
  int got;
  while ((got = field_next(&reader, &field)) > 0) {
    if (field.tag != TAG_MOUNT) fail_protocol("REST: unknown tag");
    if (field.length == 0) fail_protocol("REST: empty MOUNT");
  }
  if (got < 0) fail_protocol("REST: malformed field");
}

void rest_wait(struct mount_cursor *cursor) {
  struct frame frame;
  channel_release();
  channel_send(FRAME_STAGED, 0, NULL, 0);
  /* The end of the channel ends us here: nothing has run that would have to be looked after. */
  while (!channel_next(&frame)) channel_receive(true);
  if (frame.type != FRAME_REST || frame.id != 0) fail_protocol("after STAGED comes REST");
  check(&frame);
  *cursor = (struct mount_cursor){frame.payload, frame.payload + frame.length};
}
