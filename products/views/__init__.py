"""The pages of the developer, a file for each noun."""
