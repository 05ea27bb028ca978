"""Parts of the deployed broker by themselves in virtual time: streams over a bad medium, tree fabrics over cables."""
