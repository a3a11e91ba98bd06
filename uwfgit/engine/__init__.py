"""What happens next: moderator, prompt, extract, executor, threads."""
