/* Sink code includes this for COINATIVELIBEXPORT, and gets <stdint.h>, <string.h> and <sched.h>. */
#ifndef COIPIPELINE_SINK_H
#define COIPIPELINE_SINK_H

#include "../common/COIMacros_common.h"

#endif
