#include "lib/failure.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/channel.h"
#include "lib/fields.h"
#include "lib/frames.h"
#include "run/last_look.h"

/* A plan's path is at most this long in the report; the rest is cut. */
#define REPORTED_PATH 4096

void fail_world(const char *step, const char *path, int error) {
  /* Not static: what the last look fails by comes here again, with a path of its own. */
  uint8_t payload[REPORTED_PATH + 512];
  struct field_writer writer = {.data = payload, .capacity = sizeof payload};
  field_put(&writer, TAG_STEP, step, strnlen(step, 256));
  field_put(&writer, TAG_PATH, path, strnlen(path, REPORTED_PATH));
  field_put_u64(&writer, TAG_ERRNO, (uint64_t)error);
  last_look();
  channel_be_patient(false);
  channel_send(FRAME_FAILED, 0, payload, writer.length);
  _exit(1);
}

void fail_protocol(const char *what) {
  fail_world("protocol", what, EPROTO);
}
