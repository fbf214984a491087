"""What there is to decide: arms and their rewards, how far these vary, what a pull costs and a wrong choice loses."""
