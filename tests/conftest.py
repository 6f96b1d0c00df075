"""One hypothesis profile for all tests: bounded, patient with slow machines, the same every time.

A test that fails once in a hundred runs stops a release for nothing that was changed; to look for
new examples, run `scripts/test --hypothesis-profile=explore`.
"""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "flightchain",
    deadline=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", settings.get_profile("flightchain"), derandomize=False)
settings.load_profile("flightchain")
