"""Do two probes of one layer find the same?"""
