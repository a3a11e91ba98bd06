"""Commands about the code beside threads: what a step changed, and the way back."""
