"""The published evaluation of MFT-PubSub against AODV (spec mft-pubsub part 3)."""
