"""What every command shares: the program, its options, its output."""
