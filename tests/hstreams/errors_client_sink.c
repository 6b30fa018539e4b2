/* A sink library that is there. */
#include <hStreams_sink.h>

HSTREAMS_EXPORT void in_the_library(void);
HSTREAMS_EXPORT void in_the_library(void) {}
