"""The skip engine: many pulls in one draw.

two.py     two Gaussian arms, elimination; exactly the law of drawing every pull
many.py    more arms, elimination; certified to 1e-9 for each interval examined
bounded.py elimination among arms with finitely many outcomes; exactly the law of drawing every pull; several caps
blocks.py  sums of 2, 4, 8, ... such rewards in tables, which bounded.py is made of
sums.py    policies whose rounds are planned in advance; exact, any rewards
bridge.py  Gaussian bridges, which both eliminations are made of
binomial.py  binomial numbers, which sums of discrete rewards are made of
"""
