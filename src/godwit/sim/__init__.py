"""Virtual time, links, radios, movement and faults: a world that one seed decides."""
