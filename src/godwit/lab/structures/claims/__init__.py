"""The published claims about routing tables, by the part of the text they stand in."""
