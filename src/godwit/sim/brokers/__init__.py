"""The product in the simulator: deployed brokers on simulated links and disks, with clients that roam."""
