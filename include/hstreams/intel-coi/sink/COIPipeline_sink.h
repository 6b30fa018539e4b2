/* Sink code includes this for COINATIVELIBEXPORT. */
#ifndef COIPIPELINE_SINK_H
#define COIPIPELINE_SINK_H

#include "../common/COIMacros_common.h"

#endif
