"""Calls by grpc-python, as run.py says in JSON; prints what became of each."""

import json
import sys
import time

import grpc

job = json.loads(sys.argv[1])
channel = grpc.insecure_channel(
    "ipv4:" + ",".join(job["targets"]),
    options=[("grpc.service_config", json.dumps(job["service_config"])),
             ("grpc.enable_retries", 1)])
grpc.channel_ready_future(channel).result(timeout=15)
say = channel.unary_unary("/weir.grpc.testing.Echo/Say",
                          request_serializer=None, response_deserializer=None)
ends = []
for _ in range(job["calls"]):
    begun = time.monotonic()
    try:
        say(b"\n\x02hi", timeout=job["deadline_ms"] / 1000,
            metadata=list(job["metadata"].items()))
        code = 0
    except grpc.RpcError as error:
        code = error.code().value[0]
    ends.append({"code": code, "ms": round((time.monotonic() - begun) * 1000)})
print(json.dumps(ends))
