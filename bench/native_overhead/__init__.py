"""What an empty native task costs, beside OpenMP."""
