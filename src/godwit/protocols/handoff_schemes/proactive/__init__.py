"""The pro-active scheme: stand-ins at the neighbors, woken when their subscriber vanishes."""
