"""Predicted times of schedules and routes on a fabric of given rates and latencies.

| module | input | model |
|---|---|---|
| `alpha_beta.py` | schedules, and messages of them | the earlier step first, or fair rates |
| `fluid.py` | routes, of one job or several | max-min fair rates, which change as flows end |
| `lowered.py` | messages of a file, MSCCL XML of any tool | puts them on the links of a topology |
| `report.py` | all of these | a row for each size |
"""
