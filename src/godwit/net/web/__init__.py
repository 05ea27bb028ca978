"""Events for programs and pages that speak HTTP."""
