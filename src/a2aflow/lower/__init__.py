"""From a schedule to programs for real runtimes: passes over programs, one emitter per target."""
