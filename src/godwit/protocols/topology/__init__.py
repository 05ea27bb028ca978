"""Who is next to whom: the overlay tree that the routing protocols stand on."""
