/* weir: one streaming runtime for every processor in a machine. The whole C interface. */
#pragma once

#include <weir/buffer.h>
#include <weir/communicator.h>
#include <weir/conveyor.h>
#include <weir/domain.h>
#include <weir/event.h>
#include <weir/fabric.h>
#include <weir/graph.h>
#include <weir/grid.h>
#include <weir/kernel.h>
#include <weir/pipeline.h>
#include <weir/place.h>
#include <weir/queue.h>
#include <weir/rank.h>
#include <weir/region.h>
#include <weir/runtime.h>
#include <weir/share.h>
#include <weir/status.h>
#include <weir/stream.h>
#include <weir/stream_messages.h>
#include <weir/trace.h>
#include <weir/version.h>
#include <weir/wisdom.h>
