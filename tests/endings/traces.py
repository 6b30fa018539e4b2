"""Reads traces the way viewers do: what cannot be read raises ValueError."""

import json


def actions_of(path):
    """Returns the number of actions in a trace file."""
    if path.endswith(".pftrace"):
        with open(path, "rb") as file:
            return perfetto_slices(file.read())
    with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    slices = sum(event["ph"] == "X" for event in trace["traceEvents"])
    if slices != trace["otherData"]["actions"]:
        raise ValueError(f"{slices} slices of {trace['otherData']['actions']} actions")
    return slices


TRACE_PACKET, TRACK_EVENT, EVENT_TYPE, SLICE_BEGIN, SLICE_END = 1, 11, 9, 1, 2


def perfetto_slices(data):
    """Counts the slices of a Perfetto trace, each of which begins and ends."""
    begun = ended = 0
    for number, packet in fields(data):
        if number != TRACE_PACKET:
            raise ValueError(f"field {number} where a packet should be")
        for name, event in fields(packet):
            if name != TRACK_EVENT:
                continue
            types = [value for field, value in fields(event) if field == EVENT_TYPE]
            begun += types == [SLICE_BEGIN]
            ended += types == [SLICE_END]
    if begun != ended:
        raise ValueError(f"{begun} slices begin and {ended} end")
    return begun


def fields(data):
    """Yields the (number, value) of each field of a protobuf message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(kind)
            if kind == 2:
                size, at = varint(data, at)
            if size is None or at + size > len(data):
                raise ValueError(f"the message is cut, or no message, at byte {at}")
            value = data[at : at + size]
            at += size
        yield key >> 3, value


def varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data):
            raise ValueError("the message ends inside a number")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
