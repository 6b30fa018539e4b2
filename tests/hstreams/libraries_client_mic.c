/* Found for devices by its name. */
#include <hStreams_sink.h>

HSTREAMS_EXPORT void in_mic(uint64_t* out);
HSTREAMS_EXPORT void in_both(uint64_t* out);

HSTREAMS_EXPORT void in_mic(uint64_t* out) { *out = 2; }
HSTREAMS_EXPORT void in_both(uint64_t* out) { *out = 2; }
