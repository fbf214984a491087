"""Which prompt or model is best on the same questions, for no more calls than the choice is worth?"""
