// The same, with the converters of the program before those of hStreams_common.h.
#include "type_converter.h"

#include "converters_client.cpp"
