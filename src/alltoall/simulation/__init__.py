"""Predicted times: what schedules and routes take on a fabric of given rates and latencies.

| module | what it times | model |
|---|---|---|
| `alpha_beta.py` | schedules, and the messages that they are lowered to | messages over links |
| `fluid.py` | routes, alone or of several jobs | max-min fair rates, which change as flows end |
| `lowered.py` | | the messages of a file, on the links of a topology |
| `report.py` | | a row for each size, of one schedule, routes or several jobs |
"""
