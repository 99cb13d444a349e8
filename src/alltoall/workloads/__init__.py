"""Programs whose time an all-to-all decides, and that check their own answer.

`fft3d` and `moe` are what every rank does; they know ranks and exchanges by the two protocols of
`ranks`, so that the same program goes over MPI, torch, or what else moves shards. `launch` starts
the ranks, and `public` is what the package exports.
"""
