"""How patient hypothesis is: solving takes what it takes, and no test judges by the clock."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "a2aflow", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("a2aflow")
