"""What each command of the terminal does; `godwit.cli` says what can be typed and imports these only when needed."""
