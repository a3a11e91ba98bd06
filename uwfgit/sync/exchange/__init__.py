"""What travels between stores."""
