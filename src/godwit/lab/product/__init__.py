"""The deployed broker in the experiments of the published schemes: what is measured is what is deployed."""
