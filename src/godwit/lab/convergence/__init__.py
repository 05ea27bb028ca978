"""Do routing tables agree once everything has stopped? Random trials, counted (spec mft-pubsub 2.12, property P19)."""
