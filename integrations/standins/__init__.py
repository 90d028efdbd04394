"""GitHub, Vercel, App Store Connect and iTunes on this machine, over real HTTP.

For tests, and for `make run`: whoever has no account can click through every way to connect one.
Each service is one file that keeps its contract: who may ask, pages, limits, ETags, errors.
"""
