#!/usr/bin/env python3
"""What sending plans and heartbeats to many ranks costs rank 0: control_plane.py [--rounds N]

One process with a TCP connection (loopback) to each of N ranks sends them a message in turn, as
rank 0 does, and takes them in again; processor time of the sends alone, so that a busy machine
matters little.
"""

import argparse
import resource
import socket
import time


def pairs(count):
    listener = socket.create_server(("127.0.0.1", 0), backlog=count)
    ends = []
    for _ in range(count):
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
        for end in (near, far):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ends.append((near, far))
    return ends


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=50)
    rounds = parser.parse_args().rounds
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print("ranks  bytes  us of processor a round, of which a rank")
    for count in (15, 999):
        ends = pairs(count)
        for size in (100, 2464, 9376):
            data = b"x" * size
            spent = 0.0
            for _ in range(rounds):
                begin = time.process_time()
                for near, _ in ends:
                    near.send(data)
                spent += time.process_time() - begin
                for _, far in ends:
                    left = size
                    while left:
                        left -= len(far.recv(left))
            elapsed = spent / rounds * 1e6
            print(f"{count + 1:5d} {size:6d} {elapsed:9.0f} {elapsed / count:6.1f}", flush=True)
        for near, far in ends:
            near.close()
            far.close()


if __name__ == "__main__":
    main()
