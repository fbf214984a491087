"""The skip engine: draws many pulls at once.

two_arms     elimination between two Gaussian arms; exactly the law of drawing every pull
many_arms    elimination among more Gaussian arms; certified to 1e-9 per interval examined
first_drop   where the first arm is dropped in a jump whose two ends are known, for `many_arms`
finite       elimination among arms with finitely many outcomes, at several caps; exact as well
planned      policies whose rounds are planned in advance; exact for any rewards
"""
