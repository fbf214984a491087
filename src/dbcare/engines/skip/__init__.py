"""The skip engine: many pulls in one draw.

two.py     two Gaussian arms, elimination; exactly the law of drawing every pull
many.py    more arms, elimination; certified to 1e-9 for each interval examined
sums.py    policies whose rounds are planned in advance; exact, any rewards
bridge.py  Gaussian bridges, which both eliminations are made of
binomial.py  binomial numbers, which sums of discrete rewards are made of
"""
